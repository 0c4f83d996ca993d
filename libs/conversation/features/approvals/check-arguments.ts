import type { ArgumentProblem } from '@antiphon/contracts/agent';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { JsonValue } from '@antiphon/kernel';
import { z } from 'zod';

/** Maximum number of problems that are returned. */
const MAX_PROBLEMS = 20;
const UNREADABLE = 'the schema of the tool cannot be read, so changed arguments cannot be checked';

const pointerOf = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/**
 * Returns the places of arguments that the schema of their tool does not allow. A schema with
 * keywords that zod does not read allows none. Runs in a thread: a schema may have patterns that
 * take long.
 */
export const checkArguments = (
  schema: ToolDescription['inputSchema'],
  input: JsonValue,
): ArgumentProblem[] => {
  let parsed: z.ZodSafeParseResult<unknown>;
  try {
    parsed = z.fromJSONSchema(schema).safeParse(input);
  } catch {
    return [{ path: '', message: UNREADABLE }];
  }
  const issues = parsed.error?.issues ?? [];
  return issues.slice(0, MAX_PROBLEMS).flatMap((issue) => {
    const path = pointerOf(issue.path);
    return issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: path + pointerOf([key]), message: 'The tool has no such argument' }))
      : [{ path, message: issue.message }];
  });
};
