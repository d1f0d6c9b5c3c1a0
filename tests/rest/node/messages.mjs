// Talks to a server with Anthropic's SDK for Node and prints what it saw as JSON.
// node messages.mjs BASE_URL < {"who": question, "weather": question, "results": {city: result}}
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const { who, weather, results } = JSON.parse(readFileSync(0, "utf8"));
const asked = (model, content) => ({
  model,
  messages: [{ role: "user", content }],
  max_tokens: 2000,
  temperature: 0,
});
const letter = { ...asked("successor", "a"), max_tokens: 40 };
const sum = { ...asked("demo", "What is 17 + 25?"), thinking: { type: "adaptive" } };
const person = z.object({ name: z.string(), age: z.int() });
const form = { ...asked("demo", who), output_config: { format: zodOutputFormat(person) } };
const getWeather = betaZodTool({
  name: "get_weather",
  description: "Get the current weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  run: ({ city }) => JSON.stringify(results[city]),
});

// What is the same each time that a request is answered.
const lasting = ({ content, stop_reason, usage }) => ({
  content: content.map(({ citations, parsed_output, ...block }) => block),
  stop: stop_reason,
  tokens: usage.output_tokens,
});

async function streamed(request) {
  let text = "";
  const stream = client.messages.stream(request).on("text", (delta) => (text += delta));
  return { ...lasting(await stream.finalMessage()), text };
}

// The SDK's own loop, which runs the tools itself.
async function ran(stream) {
  const heard = [];
  const request = { ...asked("demo", weather), tools: [getWeather], stream };
  for await (const item of client.beta.messages.toolRunner(request)) {
    const { content } = stream ? await item.finalMessage() : item;
    heard.push(content.map(({ text, input }) => text ?? input));
  }
  return heard;
}

async function refused(request) {
  try {
    await client.messages.create(request);
  } catch (error) {
    const { status, type, requestID } = error;
    return { name: error.constructor.name, status, type, known: Boolean(requestID) };
  }
  return null;
}

const { max_tokens, temperature, ...counted } = sum;
const { usage } = await client.messages.create(sum);
console.log(
  JSON.stringify({
    letter: lasting(await client.messages.create(letter)),
    streamedLetter: await streamed(letter),
    sum: lasting(await client.messages.create(sum)),
    streamedSum: await streamed(sum),
    ran: [await ran(false), await ran(true)],
    person: (await client.messages.parse(form)).parsed_output,
    counted: (await client.messages.countTokens(counted)).input_tokens,
    used: usage.input_tokens + usage.cache_read_input_tokens,
    errors: [
      await refused({ ...letter, model: "nobody" }),
      await refused({ ...letter, temperature: 3 }),
      await refused({ ...letter, stop_sequences: [""], stream: true }),
    ],
  }),
);
