// Asks with Vercel's AI SDK, whose default is the Responses API, and prints what it saw as JSON.
// node aisdk.mjs BASE_URL < {"who": question, "weather": question, "results": {city: result}}
import { readFileSync } from "node:fs";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const openai = createOpenAI({ baseURL: process.argv[2], apiKey: "unused" });
const { who, weather, results } = JSON.parse(readFileSync(0, "utf8"));
const person = z.object({ name: z.string(), age: z.int() });
const greedy = { temperature: 0, maxRetries: 0 };
const letter = { ...greedy, model: openai("successor"), prompt: "a", maxOutputTokens: 40 };
const demo = { ...greedy, model: openai("demo") };
const agent = {
  ...demo,
  prompt: weather,
  stopWhen: stepCountIs(3),
  tools: {
    get_weather: tool({
      description: "Get the current weather in a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => results[city],
    }),
  },
};
const asked = { ...demo, prompt: who, output: Output.object({ schema: person }) };

const told = async (result) => ({
  text: await result.text,
  finish: await result.finishReason,
  tokens: (await result.usage).outputTokens,
});

const steps = async (result) =>
  (await result.steps).map(({ text, toolCalls }) => ({
    text,
    calls: toolCalls.map(({ input }) => input),
  }));

// Earlier answers of the model are references to what the server keeps.
async function conversation(...questions) {
  const messages = [];
  const answers = [];
  for (const content of questions) {
    messages.push({ role: "user", content });
    const result = await generateText({ ...demo, messages });
    messages.push(...result.responseMessages);
    answers.push(result.text);
  }
  return answers;
}

async function refused(request) {
  try {
    await generateText(request);
  } catch ({ name, statusCode, data }) {
    return { name, status: statusCode, param: data?.error.param };
  }
  return null;
}

console.log(
  JSON.stringify({
    whole: await told(await generateText(letter)),
    streamed: await told(streamText(letter)),
    steps: await steps(await generateText(agent)),
    streamedSteps: await steps(streamText(agent)),
    conversation: await conversation("What is 17 + 25?", "My name is Anna.", "What is my name?"),
    person: (await generateText(asked)).output,
    streamedPerson: await streamText(asked).output,
    errors: [
      await refused({ ...letter, model: openai("nobody") }),
      await refused({ ...letter, temperature: 3 }),
    ],
  }),
);
