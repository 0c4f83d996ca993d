import { entriesOf, textOf } from './problem-list.js';
import type { ProblemList } from './problem-list.js';
import type { TomlData } from './toml-value.js';

/** Checks that each rule of a policy that has a text of an argument names the argument. */
export const checkPolicies = (list: ProblemList, file: Readonly<Record<string, TomlData>>): void => {
  for (const agent of entriesOf(file, 'agents'))
    for (const { table, path } of entriesOf(agent.table, 'policy'))
      if (table['matches'] !== undefined && textOf(table, 'argument') === null)
        list.add([...agent.path, ...path, 'matches'], {
          message: 'a text without the argument that has it: the rule would match every call',
          expected: 'argument, with a JSON pointer into the arguments of a call',
          example: 'argument = "/path"',
        });
};
