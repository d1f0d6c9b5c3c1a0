// Has conversations of the Responses API with OpenAI's SDK for Node and prints them as JSON.
// node responses.mjs BASE_URL < {"who": question, "weather": question, "results": {city: result}}
import { readFileSync } from "node:fs";
import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const { who, weather, results } = JSON.parse(readFileSync(0, "utf8"));
const letter = { model: "successor", input: "a", temperature: 0, max_output_tokens: 40 };
const demo = { model: "demo", temperature: 0 };

// What is the same each time that a request is answered.
function lasting(response) {
  const { id, created_at, completed_at, usage, ...fields } = response;
  const output = response.output.map(({ id, call_id, ...item }) => item);
  return { ...fields, output };
}

// The helper adds fields for what is parsed, and so does this.
const whole = (request) => client.responses.parse(request);
const accumulated = (request) => client.responses.stream(request).finalResponse();

const tools = [
  zodResponsesFunction({
    name: "get_weather",
    description: "Get the current weather in a city.",
    parameters: z.object({ city: z.string() }),
  }),
];

// A loop that runs tools until the model answers without a call.
async function turns(ask, kept) {
  let input = [{ role: "user", content: weather }];
  let previous_response_id = null;
  const heard = [];
  while (heard.length < 5) {
    const response = await ask({ ...demo, input, tools, previous_response_id });
    const calls = response.output.filter(({ type }) => type === "function_call");
    const parsed = calls.map((call) => call.parsed_arguments);
    heard.push({ text: response.output_text, calls: parsed });
    if (!calls.length) break;
    const outputs = calls.map(({ call_id, parsed_arguments: { city } }) => ({
      type: "function_call_output",
      call_id,
      output: JSON.stringify(results[city]),
    }));
    if (kept) previous_response_id = response.id;
    input = kept ? outputs : [...input, ...response.output, ...outputs];
  }
  return heard;
}

async function refused(request) {
  try {
    await client.responses.create(request);
  } catch (error) {
    const { status, code, param } = error;
    const known = error instanceof OpenAI.APIError && Boolean(error.requestID);
    return { name: error.constructor.name, status, code, param, known };
  }
  return null;
}

const text = { format: zodTextFormat(z.object({ name: z.string(), age: z.int() }), "person") };
const asked = { ...demo, input: who, text };
const created = await client.responses.create(letter);
const stream = client.responses.stream(letter);
let deltas = "";
stream.on("response.output_text.delta", ({ delta }) => (deltas += delta));

console.log(
  JSON.stringify({
    created,
    retrieved: await client.responses.retrieve(created.id),
    whole: lasting(await whole(letter)),
    accumulated: lasting(await stream.finalResponse()),
    deltas,
    parsed: (await whole(asked)).output_parsed,
    accumulatedParsed: (await accumulated(asked)).output_parsed,
    turns: {
      whole: await turns(whole, false),
      streamed: await turns(accumulated, false),
      "continued whole": await turns(whole, true),
      "continued streamed": await turns(accumulated, true),
    },
    errors: [
      await refused({ ...letter, model: "nobody" }),
      await refused({ ...letter, temperature: 3 }),
      await refused({ ...letter, background: true, stream: true }),
    ],
  }),
);
