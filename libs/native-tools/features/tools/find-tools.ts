import type { AgentDirectory } from '@antiphon/agents-features';
import { NATIVE_TOOLS } from '@antiphon/config';
import type { NATIVE_INPUT, NativeCall, ToolCatalog } from '@antiphon/conversation-features';
import { resultOf } from '@antiphon/conversation-features';
import { clipText } from '@antiphon/kernel';
import type { z } from 'zod';
import { rankTools } from './rank-tools.js';

export interface FindToolsDeps {
  readonly catalog: Pick<ToolCatalog, 'toolsOf'>;
  readonly agents: Pick<AgentDirectory, 'load'>;
}

/** Maximum length of the description of a tool in a result: its schema follows in the next prompt. */
const MAX_DESCRIPTION = 200;
const NATIVE: ReadonlySet<string> = new Set(NATIVE_TOOLS);

/** Finds tools of an agent by what they do. */
export class FindTools {
  constructor(private readonly deps: FindToolsDeps) {}

  /** Returns the names of the found tools in the first line, by which later prompts have them. */
  async find(call: NativeCall, input: z.output<(typeof NATIVE_INPUT)['find_tools']>): Promise<string> {
    const agent = await this.deps.agents.load(call.workspace, call.agentId);
    const all = await this.deps.catalog.toolsOf(call.workspace, agent?.tools ?? []);
    // Native tools are in each prompt.
    const tools = all.filter(({ name }) => !NATIVE.has(name));
    const found = rankTools(tools, input.query).slice(0, input.limit);
    const lines = found.map(({ name, description }) => `${name}: ${clipText(description, MAX_DESCRIPTION)}`);
    const header = { tools: tools.length, found: found.map(({ name }) => name) };
    return resultOf(header, found.length === 0 ? 'no tool matches; use other words' : lines.join('\n'));
  }
}
