import { z } from 'zod';
import { TOOL, hint, show, shownText } from './key-hints.js';

const DECISIONS = ['allow', 'ask', 'deny'] as const;

/** A pointer into the arguments of a call (RFC 6901). The empty one is the arguments themselves. */
const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/;

const Rule = hint(
  z.strictObject({
    tool: show(
      hint(z.string().regex(TOOL), 'a tool, some by get_*, or * for all of them', 'tool = "http-get"'),
    ).default('*'),
    capability: shownText(
      'a capability that the tool has, in which * stands for any characters',
      'capability = "http:*"',
      300,
    ).optional(),
    argument: show(
      hint(
        z.string().max(500).regex(POINTER),
        'a JSON pointer into the arguments of a call',
        'argument = "/path"',
      ),
    ).optional(),
    matches: shownText(
      'text of the argument, in which * stands for any characters',
      'matches = "docs/*"',
      1_000,
    ).optional(),
    decision: hint(z.enum(DECISIONS), `one of ${DECISIONS.join(', ')}`, 'decision = "ask"'),
  }),
  'a table in double brackets, [[agents.policy]]',
  '[[agents.policy]]',
);

/** Schema of `[[agents.policy]]`: the first rule that matches a call decides on it. */
export const Policy = hint(
  z.array(Rule).max(200),
  'at most 200 tables in double brackets, [[agents.policy]]',
  '[[agents.policy]]',
).optional();
