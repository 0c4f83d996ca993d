import type { RunInputs, WorkflowDefinition } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';

/** What was given, with the defaults of what was not. Throws `RUN.UNKNOWN_INPUT`, `RUN.MISSING_INPUT`. */
export const resolveInputs = ({ inputs }: WorkflowDefinition, given: RunInputs): RunInputs => {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(inputs, name));
  if (unknown !== undefined)
    throw rejected('RUN.UNKNOWN_INPUT', `the workflow declares no input "${unknown}"`);
  const values = Object.entries(inputs).map(([name, { default: standard }]) => {
    const value = Object.hasOwn(given, name) ? given[name] : standard;
    if (value === undefined)
      throw rejected('RUN.MISSING_INPUT', `the input "${name}" is missing, and has no default`);
    return [name, value] as const;
  });
  return Object.fromEntries(values);
};
