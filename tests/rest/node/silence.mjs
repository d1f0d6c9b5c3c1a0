// Reads a stream that falls silent with OpenAI's SDK for Node. Prints a line when it has begun, one
// for each comment, then the text of the stream as JSON.
// node silence.mjs BASE_URL
import OpenAI from "openai";

const noting = new TransformStream({
  transform(bytes, controller) {
    if (Buffer.from(bytes).includes(": ping")) console.log("comment");
    controller.enqueue(bytes);
  },
});

async function fetchNoting(...request) {
  const response = await fetch(...request);
  return new Response(response.body.pipeThrough(noting), response);
}

const client = new OpenAI({
  baseURL: process.argv[2],
  apiKey: "unused",
  maxRetries: 0,
  fetch: fetchNoting,
});
const request = {
  model: "successor",
  messages: [{ role: "user", content: "a" }],
  temperature: 0,
  max_tokens: 4000,
  stream: true,
};
let text = "";
for await (const chunk of await client.chat.completions.create(request)) {
  if (!text && chunk.choices[0]?.delta?.content) console.log("begun");
  text += chunk.choices[0]?.delta?.content ?? "";
}
console.log(JSON.stringify(text));
