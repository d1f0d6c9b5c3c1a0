// Asks about images with OpenAI's SDK for Node and prints the answers, whole and streamed, as JSON.
// node images.mjs BASE_URL < [messages, ...]
import { readFileSync } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const { completions } = client.chat;
const told = ({ choices, usage }) => ({ text: choices[0].message.content, usage });

const answers = [];
for (const messages of JSON.parse(readFileSync(0, "utf8"))) {
  const request = { model: "demo-vision", messages, temperature: 0 };
  const stream = completions.stream({ ...request, stream_options: { include_usage: true } });
  answers.push({
    whole: told(await completions.create(request)),
    streamed: told(await stream.finalChatCompletion()),
  });
}
console.log(JSON.stringify(answers));
