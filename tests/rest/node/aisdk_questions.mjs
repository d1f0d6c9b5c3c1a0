// What is asked with Vercel's AI SDK, whichever API a provider speaks, and what is told of answers.
import { readFileSync } from "node:fs";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { who, weather, results } = JSON.parse(readFileSync(0, "utf8"));
const person = z.object({ name: z.string(), age: z.int() });
const greedy = { temperature: 0, maxRetries: 0 };

export const letterOf = (model) => ({ ...greedy, model, prompt: "a", maxOutputTokens: 40 });
export const demoOf = (model) => ({ ...greedy, model });

export const told = async (result) => ({
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

// What the SDK makes of earlier answers goes back with each question.
async function conversation(request, ...questions) {
  const messages = [];
  const answers = [];
  for (const content of questions) {
    messages.push({ role: "user", content });
    const result = await generateText({ ...request, messages });
    messages.push(...result.responseMessages);
    answers.push(result.text);
  }
  return answers;
}

// The error of a request, with a field of the API's own error object.
export async function refused(request, field) {
  try {
    await generateText(request);
  } catch ({ name, statusCode, data }) {
    return { name, status: statusCode, [field]: data?.error[field] };
  }
  return null;
}

// What is seen of the answers to what any API is asked; `talk` is the request of a conversation.
export async function seen(letter, demo, talk) {
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
  return {
    whole: await told(await generateText(letter)),
    streamed: await told(streamText(letter)),
    steps: await steps(await generateText(agent)),
    streamedSteps: await steps(streamText(agent)),
    conversation: await conversation(
      talk,
      "What is 17 + 25?",
      "My name is Anna.",
      "What is my name?",
    ),
    person: (await generateText(asked)).output,
    streamedPerson: await streamText(asked).output,
  };
}
