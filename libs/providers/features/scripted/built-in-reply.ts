import { findJsonExcess } from '@antiphon/kernel';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import type { ScenarioReply, ScenarioStep } from './scenario.js';
import type { TurnView } from './turn-view.js';

const TOOL_LINE = /^\/tool(?=\s|$)/;
const THEN_LINE = /^\/then\s*$/;

/** Groups `/tool` lines by step. A line `/then` starts the next step. */
const readCommands = (text: string): string[][] => {
  const groups: string[][] = [[]];
  for (const line of text.split(/\r?\n/)) {
    if (THEN_LINE.test(line)) groups.push([]);
    else if (TOOL_LINE.test(line)) groups.at(-1)?.push(line);
  }
  return groups.filter((group) => group.length > 0);
};

type Command = { readonly step: ScenarioStep } | { readonly problem: string };

const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const readCommand = (line: string): Command => {
  const rest = line.slice('/tool'.length).trim();
  const [name = ''] = rest.split(/\s/, 1);
  if (name === '') return { problem: 'say which tool: /tool NAME {"its":"input"}' };
  const json = rest.slice(name.length).trim();
  if (json === '') return { step: { tool: { name, input: {} } } };
  const excess = findJsonExcess(json);
  if (excess !== null) return { problem: `the input of /tool ${name} ${excess}` };
  let input: JsonValue;
  try {
    input = JSON.parse(json) as JsonValue;
  } catch {
    return { problem: `the input of /tool ${name} is not JSON` };
  }
  return isObject(input)
    ? { step: { tool: { name, input } } }
    : { problem: `the input of /tool ${name} is not a JSON object` };
};

/** Splits text into words, so that a demo streams. The pieces joined are the text. */
const toSteps = (text: string): ScenarioStep[] =>
  (text.match(/\S*\s*/g) ?? []).filter(Boolean).map((piece) => ({ text: piece }));

const toReply = (play: ScenarioStep[]): ScenarioReply => ({ when: {}, play });

const reportResults = ({ results }: TurnView): string =>
  results
    .map(({ name, content, isError }) =>
      isError ? `${name} failed: ${content}` : `${name} answered: ${content}`,
    )
    .join('\n');

/**
 * Returns the reply without a scenario. It requests the tools that `/tool NAME {json}` lines of the
 * user's message name, in parallel, and then reports their results. A line `/then` starts another
 * step. It echoes any other message.
 */
export const builtInReply = (turn: TurnView): ScenarioReply => {
  const groups = readCommands(turn.user);
  if (groups.length === 0)
    return toReply(toSteps(turn.user.trim() === '' ? '(nothing was said)' : turn.user));
  const commands = groups.flat().map(readCommand);
  const problem = commands.find((command) => 'problem' in command);
  if (problem !== undefined) return toReply(toSteps(problem.problem));
  const group = groups[turn.step - 1];
  if (group === undefined) return toReply(toSteps(reportResults(turn)));
  return toReply(group.map(readCommand).flatMap((command) => ('step' in command ? [command.step] : [])));
};
