import { join } from 'node:path';
import { z } from 'zod';
import { invalid } from '@antiphon/kernel';
import type { Environment } from '../service-env.js';

const blankIsMissing = (value: unknown): unknown => (value === '' ? undefined : value);
const optional = <S extends z.ZodType>(schema: S) => z.preprocess(blankIsMissing, schema.optional());

const Variables = z.object({
  ANTIPHON_HOME: z.string(),
  ANTIPHON_LOG_SIGNING_KEY_FILE: optional(z.string()),
  ANTIPHON_LOG_ROOTS_FILE: optional(z.string()),
  ANTIPHON_LOG_ROOT_EVERY_S: optional(z.coerce.number().int().min(1).max(86_400)),
});

export interface LogRootsSettings {
  readonly keyFile: string;
  readonly rootsFile: string;
  readonly everyMs: number;
}

/** Where roots go and how often, ten minutes by default. Throws `SERVICE.BAD_ENVIRONMENT` naming each variable that is wrong. */
export const readLogRootsEnv = (env: Environment): LogRootsSettings => {
  const parsed = Variables.safeParse(env);
  if (!parsed.success) {
    const names = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw invalid('SERVICE.BAD_ENVIRONMENT', `the service cannot start: ${names.join('; ')}`);
  }
  const { ANTIPHON_HOME: home, ...given } = parsed.data;
  return {
    keyFile: given.ANTIPHON_LOG_SIGNING_KEY_FILE ?? join(home, 'credentials', 'log-signing.key'),
    rootsFile: given.ANTIPHON_LOG_ROOTS_FILE ?? join(home, 'log-roots.jsonl'),
    everyMs: (given.ANTIPHON_LOG_ROOT_EVERY_S ?? 600) * 1_000,
  };
};
