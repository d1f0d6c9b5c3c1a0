// Talks to a server with OpenAI's SDK for Node and prints what it saw as JSON.
// node chat.mjs BASE_URL
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const letter = {
  model: "successor",
  messages: [{ role: "user", content: "a" }],
  temperature: 0,
  max_tokens: 40,
};
const story = {
  model: "demo",
  messages: [{ role: "user", content: "Tell me a story." }],
  temperature: 1,
  seed: 5,
  n: 3,
  logprobs: true,
  top_logprobs: 1,
};

const told = (choice) => ({
  role: choice.message.role,
  text: choice.message.content,
  finish: choice.finish_reason,
  tokens: choice.logprobs?.content?.map((token) => token.token),
});

async function streamed(request) {
  const pieces = [];
  let usage = null;
  const options = { stream: true, stream_options: { include_usage: true } };
  for await (const chunk of await client.chat.completions.create({ ...request, ...options })) {
    pieces.push(chunk.choices[0]?.delta?.content ?? "");
    usage = chunk.usage ?? usage;
  }
  return { text: pieces.join(""), usage };
}

async function completed(request) {
  const whole = await client.completions.create(request);
  const joined = [];
  for await (const chunk of await client.completions.create({ ...request, stream: true })) {
    for (const { index, text } of chunk.choices) joined[index] = (joined[index] ?? "") + text;
  }
  return { whole: whole.choices.map((choice) => choice.text), streamed: joined };
}

async function refused(request) {
  try {
    await client.chat.completions.create(request);
  } catch (error) {
    const { status, code, param } = error;
    const known = error instanceof OpenAI.APIError && Boolean(error.requestID);
    return { name: error.constructor.name, status, code, param, known };
  }
  return null;
}

const whole = await client.chat.completions.create(letter);
const stories = await client.chat.completions.create(story);
const storyStream = await client.chat.completions.stream(story).finalChatCompletion();
const letterStream = client.chat.completions.stream(letter);
let contentEvents = "";
letterStream.on("content", (delta) => (contentEvents += delta));

console.log(
  JSON.stringify({
    whole: told(whole.choices[0]),
    streamed: await streamed(letter),
    accumulated: told((await letterStream.finalChatCompletion()).choices[0]),
    stories: stories.choices.map(told),
    accumulatedStories: storyStream.choices.map(told),
    contentEvents,
    completed: await completed({
      model: "successor",
      prompt: ["a", "f"],
      max_tokens: 4,
      temperature: 0,
      stop: "i",
    }),
    errors: [
      await refused({ ...letter, model: "nobody" }),
      await refused({ ...letter, temperature: 3 }),
      await refused({ ...letter, modalities: ["audio"], stream: true }),
    ],
    models: (await client.models.list()).data.map((entry) => entry.id),
    model: (await client.models.retrieve("demo")).id,
  }),
);
