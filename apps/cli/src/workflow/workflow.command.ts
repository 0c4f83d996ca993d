import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import type { WorkflowSummary, WorkflowView } from '@antiphon/contracts/agent';
import { loadConfig } from '@antiphon/config';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { askJson, getJson } from '../connection/http-client.js';
import { readDefinition } from './read-definition.js';

const validate = async ({ output, env, cwd }: CommandContext, file: string): Promise<void> => {
  // Loaded here: no other command reads definitions.
  const { orderOf, parseDefinition } = await import('@antiphon/agent-features/definition');
  const definition = parseDefinition(readDefinition(cwd, file));
  const config = loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir(), requireKeys: false });
  const order = orderOf(config, definition);
  output.result({ valid: true, name: definition.name, order }, `${definition.name}: ${order.join(', ')}`);
};

interface SaveOptions {
  readonly id?: string;
  readonly draft?: boolean;
}

const save = async (
  { output, gateway, cwd }: CommandContext,
  file: string,
  { id, draft = false }: SaveOptions,
): Promise<void> => {
  const path = id === undefined ? '/api/v1/workflows' : `/api/v1/workflows/${encodeURIComponent(id)}`;
  const saved = (await askJson(gateway(), path, {
    method: id === undefined ? 'POST' : 'PUT',
    body: { definition: readDefinition(cwd, file), draft },
    idempotencyKey: randomUUID(),
  })) as WorkflowView;
  output.result(saved, `${saved.id}  ${saved.name}, version ${saved.version}, ${saved.status}`);
};

interface PageOptions {
  readonly limit: string;
  readonly cursor?: string;
}

const list = async ({ output, gateway }: CommandContext, { limit, cursor }: PageOptions): Promise<void> => {
  const query = new URLSearchParams({ limit, ...(cursor === undefined ? {} : { cursor }) });
  const page = (await getJson(gateway(), `/api/v1/workflows?${query}`)) as {
    workflows: WorkflowSummary[];
    nextCursor: string | null;
  };
  const lines = page.workflows.map(
    ({ id, status, version, name }) => `${id}  ${status.padEnd(10)} v${version}  ${name}`,
  );
  const more = page.nextCursor === null ? [] : [`more: --cursor ${page.nextCursor}`];
  output.result(page, [...lines, ...more].join('\n'));
};

/** `antiphon workflow validate|save|list` */
export const addWorkflow = (program: Command, context: ContextOf): void => {
  const workflow = program
    .command('workflow')
    .description('definitions of runs: agents that work in an order');
  workflow
    .command('validate <file>')
    .description('read a definition and say what is wrong with it; needs no gateway')
    .addHelpText(
      'after',
      '\nExample:\n  antiphon workflow validate examples/workflows/plan-implement-review.yaml',
    )
    .action((file: string, _: unknown, command: Command) => validate(context(command), file));
  workflow
    .command('save <file>')
    .description('keep a definition, to be started by its id')
    .option('--id <id>', 'as the next version of this workflow')
    .option('--draft', 'without validating it')
    .action((file: string, options: SaveOptions, command: Command) => save(context(command), file, options));
  workflow
    .command('list')
    .description('the workflows that were saved, newest first')
    .option('--limit <n>', 'workflows a page, 1 to 200', '50')
    .option('--cursor <cursor>', 'where an earlier page ended')
    .action((options: PageOptions, command: Command) => list(context(command), options));
};
