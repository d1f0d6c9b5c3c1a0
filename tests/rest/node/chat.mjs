// Talks to a server with OpenAI's SDK for Node and prints what it saw as JSON.
// node chat.mjs BASE_URL MODEL PROMPT MAX_TOKENS
import OpenAI from "openai";

const [baseURL, model, prompt, maxTokens] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0 });
const request = {
  model,
  messages: [{ role: "user", content: prompt }],
  temperature: 0,
  max_tokens: Number(maxTokens),
};

const whole = await client.chat.completions.create(request);

const pieces = [];
const raw = await client.chat.completions.create({
  ...request,
  stream: true,
  stream_options: { include_usage: true },
});
let usage = null;
for await (const chunk of raw) {
  pieces.push(chunk.choices[0]?.delta?.content ?? "");
  usage = chunk.usage ?? usage;
}

const accumulated = await client.chat.completions.stream(request).finalChatCompletion();

let error = null;
try {
  await client.chat.completions.create({ ...request, model: "nobody" });
} catch (caught) {
  error = { name: caught.constructor.name, status: caught.status, code: caught.code, param: caught.param };
}

const models = (await client.models.list()).data.map((entry) => entry.id);

console.log(
  JSON.stringify({
    whole: whole.choices[0].message.content,
    finish: whole.choices[0].finish_reason,
    streamed: pieces.join(""),
    usage,
    accumulated: accumulated.choices[0].message.content,
    error,
    models,
  }),
);
