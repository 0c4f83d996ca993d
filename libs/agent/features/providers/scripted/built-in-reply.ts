import type { JsonObject, JsonValue } from '@antiphon/kernel';
import type { ScenarioReply, ScenarioStep } from './scenario.js';
import type { TurnView } from './turn-view.js';

const TOOL_LINE = /^\/tool(?:\s+(\S+)(?:\s+(.*?))?)?\s*$/;
const THEN_LINE = /^\/then\s*$/;

/** `/tool` lines by step; a line `/then` begins the next step. */
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
  const [, name, json] = TOOL_LINE.exec(line) ?? [];
  if (name === undefined) return { problem: 'say which tool: /tool NAME {"its":"input"}' };
  if (json === undefined || json === '') return { step: { tool: { name, input: {} } } };
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

/** Word by word, so that a demo streams; the pieces joined are the text. */
const say = (text: string): ScenarioStep[] =>
  (text.match(/\S*\s*/g) ?? []).filter(Boolean).map((piece) => ({ text: piece }));

const reply = (play: ScenarioStep[]): ScenarioReply => ({ when: {}, play });

const report = ({ results }: TurnView): string =>
  results
    .map(({ name, content, isError }) =>
      isError ? `${name} failed: ${content}` : `${name} answered: ${content}`,
    )
    .join('\n');

/**
 * What the scripted provider says when no scenario does: it asks for the tools that `/tool NAME {json}` lines of
 * the user's message name (side by side; a line `/then` begins another step), then tells their results.
 * To anything else it answers with what was said.
 */
export const builtInReply = (turn: TurnView): ScenarioReply => {
  const groups = readCommands(turn.user);
  if (groups.length === 0) return reply(say(turn.user.trim() === '' ? '(nothing was said)' : turn.user));
  const commands = groups.flat().map(readCommand);
  const problem = commands.find((command) => 'problem' in command);
  if (problem !== undefined) return reply(say(problem.problem));
  const group = groups[turn.step - 1];
  if (group === undefined) return reply(say(report(turn)));
  return reply(group.map(readCommand).flatMap((command) => ('step' in command ? [command.step] : [])));
};
