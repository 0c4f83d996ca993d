import { isAbsolute } from 'node:path';
import type { KeyPath } from './config-problem.js';
import { textOf } from './problem-list.js';
import type { ProblemList } from './problem-list.js';
import type { TomlData } from './toml-value.js';

/** Checks the keys of a provider of kind cli: it has a program, and no address. */
export const checkProgram = (
  list: ProblemList,
  path: KeyPath,
  table: Readonly<Record<string, TomlData>>,
): void => {
  if (textOf(table, 'program') === null && table['program'] === undefined)
    list.add([...path, 'program'], { message: 'missing; a provider of kind cli names its program' });
  const command = textOf(table, 'command');
  if (command !== null && !isAbsolute(command))
    list.add([...path, 'command'], { message: 'not an absolute path' });
  if (table['base_url'] !== undefined)
    list.add([...path, 'base_url'], {
      message: 'a provider of kind cli has no address',
      expected: 'program, and command where it is not in PATH',
      example: 'program = "claude"',
    });
};
