// Asks with Vercel's AI SDK and its provider for Anthropic, and prints what it saw as JSON.
// node aisdk_anthropic.mjs BASE_URL < {"who": question, "weather": question, "results": {city: result}}
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText, streamText } from "ai";
import { demoOf, letterOf, refused, seen, told } from "./aisdk_questions.mjs";

const anthropic = createAnthropic({ baseURL: process.argv[2], apiKey: "unused" });
const letter = letterOf(anthropic("successor"));
// With thinking it leaves the temperature out.
const thinking = {
  model: anthropic("demo"),
  maxRetries: 0,
  providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
};
const sum = { ...thinking, prompt: "What is 17 + 25?" };

console.log(
  JSON.stringify({
    // Thoughts of earlier answers are sent back with their signatures.
    ...(await seen(letter, demoOf(anthropic("demo")), thinking)),
    thought: await told(await generateText(sum)),
    streamedThought: await told(streamText(sum)),
    error: await refused({ ...letter, model: anthropic("nobody") }, "type"),
  }),
);
