import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { entriesOf, textOf, textsOf } from './problem-list.js';
import type { Entry, ProblemDetails, ProblemList } from './problem-list.js';
import type { TomlData } from './toml-value.js';

type File = Readonly<Record<string, TomlData>>;

const workspaceOf = ({ table }: Entry): string => textOf(table, 'workspace') ?? DEFAULT_WORKSPACE;

/** Returns the problem of a reference to an entry of another workspace, or null. */
const foreignUse = (what: string, name: string, used: string, user: string): ProblemDetails | null =>
  used === '*' || used === user
    ? null
    : {
        message: `the ${what} ${name} belongs to the workspace ${used}`,
        expected: `a ${what} of the workspace ${user}, or one with workspace = "*"`,
        example: null,
      };

/** Checks that agents and bindings use entries of their own workspace, or of all workspaces. */
export const checkWorkspaces = (list: ProblemList, file: File): void => {
  const agents = entriesOf(file, 'agents');
  const plugins = entriesOf(file, 'plugins');
  for (const agent of agents)
    textsOf(agent.table, 'tools').forEach((tool, index) => {
      const plugin = plugins.find(({ table }) => textOf(table, 'name') === tool);
      const problem = plugin && foreignUse('tool', tool, workspaceOf(plugin), workspaceOf(agent));
      if (problem) list.add([...agent.path, 'tools', index], problem);
    });
  for (const { table, path } of entriesOf(file, 'bindings')) {
    const own = textOf(table, 'workspace');
    const agent = agents.find((one) => textOf(one.table, 'id') === textOf(table, 'agent'));
    const problem =
      own === null || agent === undefined
        ? null
        : foreignUse('agent', textOf(table, 'agent') ?? '', workspaceOf(agent), own);
    if (problem) list.add([...path, 'agent'], problem);
  }
};
