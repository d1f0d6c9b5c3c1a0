// Asks with Vercel's AI SDK, whose default is the Responses API, and prints what it saw as JSON.
// node aisdk.mjs BASE_URL < {"who": question, "weather": question, "results": {city: result}}
import { createOpenAI } from "@ai-sdk/openai";
import { demoOf, letterOf, refused, seen } from "./aisdk_questions.mjs";

const openai = createOpenAI({ baseURL: process.argv[2], apiKey: "unused" });
const letter = letterOf(openai("successor"));
const demo = demoOf(openai("demo"));

console.log(
  JSON.stringify({
    // Earlier answers of the model are references to what the server keeps.
    ...(await seen(letter, demo, demo)),
    errors: [
      await refused({ ...letter, model: openai("nobody") }, "param"),
      await refused({ ...letter, temperature: 3 }, "param"),
    ],
  }),
);
