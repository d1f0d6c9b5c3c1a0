// Asks with Vercel's AI SDK and its provider for Anthropic, and prints what it saw as JSON.
// node aisdk_anthropic.mjs BASE_URL < {"who": question, "weather": question, "results": {city: result}}
import { readFileSync } from "node:fs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const anthropic = createAnthropic({ baseURL: process.argv[2], apiKey: "unused" });
const { who, weather, results } = JSON.parse(readFileSync(0, "utf8"));
const person = z.object({ name: z.string(), age: z.int() });
const greedy = { temperature: 0, maxRetries: 0 };
const letter = { ...greedy, model: anthropic("successor"), prompt: "a", maxOutputTokens: 40 };
const demo = { ...greedy, model: anthropic("demo") };
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
const thinking = { type: "enabled", budgetTokens: 1024 };
// With thinking it leaves the temperature out.
const sum = {
  model: anthropic("demo"),
  maxRetries: 0,
  prompt: "What is 17 + 25?",
  providerOptions: { anthropic: { thinking } },
};

const told = async (result) => ({
  text: await result.text,
  reasoning: await result.reasoningText,
  finish: await result.finishReason,
  tokens: (await result.usage).outputTokens,
});

const steps = async (result) =>
  (await result.steps).map(({ text, toolCalls }) => ({
    text,
    calls: toolCalls.map(({ input }) => input),
  }));

// Thoughts of earlier answers are sent back with their signatures.
async function conversation(...questions) {
  const messages = [];
  const answers = [];
  for (const content of questions) {
    messages.push({ role: "user", content });
    const { prompt, ...request } = sum;
    const result = await generateText({ ...request, messages });
    messages.push(...result.responseMessages);
    answers.push(result.text);
  }
  return answers;
}

async function refused(request) {
  try {
    await generateText(request);
  } catch ({ name, statusCode, data }) {
    return { name, status: statusCode, type: data?.error.type };
  }
  return null;
}

console.log(
  JSON.stringify({
    whole: await told(await generateText(letter)),
    streamed: await told(streamText(letter)),
    thought: await told(await generateText(sum)),
    streamedThought: await told(streamText(sum)),
    steps: await steps(await generateText(agent)),
    streamedSteps: await steps(streamText(agent)),
    conversation: await conversation("What is 17 + 25?", "My name is Anna.", "What is my name?"),
    person: (await generateText(asked)).output,
    streamedPerson: await streamText(asked).output,
    error: await refused({ ...letter, model: anthropic("nobody") }),
  }),
);
