import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, installPins, startServer } from './pip.mjs';

/** Every package of the proxy, its own among them, at one version. */
const PINS = fileURLToPath(new URL('../litellm.txt', import.meta.url));

export const litellmVersion = () => /^litellm==(.+)$/m.exec(readFileSync(PINS, 'utf8'))[1];

const CONFIG = (providerUrl) => `
model_list:
  - model_name: mock
    litellm_params: { model: openai/mock, api_base: "${providerUrl}/v1", api_key: none }
  - model_name: claude-mock
    litellm_params: { model: anthropic/claude-mock, api_base: "${providerUrl}", api_key: none }
litellm_settings: { telemetry: false, num_retries: 0 }
general_settings: { disable_spend_logs: true }
`;

/**
 * LiteLLM's proxy before this provider, in a process of its own: model `mock` in the format of
 * OpenAI, `claude-mock` in that of Anthropic. One worker, no database, and the list of prices that
 * it ships. Throws an error with `unmeasured` when Python, the package index or the proxy itself is
 * not to be had.
 */
export const startLitellm = async (providerUrl) => {
  const program = join(await installPins('litellm', PINS, 'some 700 MB, some minutes'), 'bin', 'litellm');
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-litellm-'));
  writeFileSync(join(folder, 'litellm.yaml'), CONFIG(providerUrl));
  const [port, key] = [await freePort(), `sk-${randomBytes(24).toString('hex')}`];
  const url = `http://127.0.0.1:${port}`;
  const args = ['--config', join(folder, 'litellm.yaml'), '--host', '127.0.0.1', '--port', String(port)];
  const close = await startServer(program, [...args, '--num_workers', '1'], {
    ...{ folder, healthUrl: `${url}/health/liveliness` },
    env: { LITELLM_MASTER_KEY: key, LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' },
    clean: () => rmSync(folder, { recursive: true, force: true }),
  });
  return { baseUrl: `${url}/v1`, key, close };
};
