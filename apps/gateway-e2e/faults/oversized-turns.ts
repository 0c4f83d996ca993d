import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AllowedEnds } from '@antiphon/testing/load';

/** An agent whose answers are larger than an event may be. */
export const OVERSIZED_AGENT = 'oversized';
/** Each of its turns fails, and none is lost. */
export const OVERSIZED_ENDS: AllowedEnds = { completed: { atLeast: 0 }, failed: ['PROVIDER.PROTOCOL'] };

/** The text and the arguments each fit into an event of 1 MiB. Together they do not. */
const SCENARIO = {
  version: 1,
  replies: [
    {
      play: [
        { text: 'x'.repeat(790_000) },
        { tool: { name: 'echo', input: { text: '\u5b57'.repeat(99_000) } } },
      ],
    },
  ],
};

/** Writes the scenario of the agent. Returns its configuration, and the removal of the file. */
export const prepareOversized = (): { readonly config: string; readonly remove: () => void } => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-oversized-'));
  const path = join(folder, 'oversized.json');
  writeFileSync(path, JSON.stringify(SCENARIO));
  const config = `
[[providers]]
name = "oversized"
kind = "scripted"
base_url = "file:${path}"
# The scripted provider ends its text at the output limit.
max_output_tokens = 300_000

[[agents]]
id = "${OVERSIZED_AGENT}"
provider = "oversized"
tools = ["echo"]
`;
  return { config, remove: () => rmSync(folder, { recursive: true, force: true }) };
};
