import { AgentSpec } from '@antiphon/contracts/agent';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { MAX_JSON_DEPTH, invalid, nestsDeeperThan } from '@antiphon/kernel';
import type { RoleSettings } from '../text-work.js';
import { rolePath, splitRole } from '../turns/role-text.js';

const FrontMatter = z.strictObject({
  ...AgentSpec.pick({
    name: true,
    base: true,
    provider: true,
    model: true,
    tools: true,
    thinking: true,
  }).partial().shape,
  description: z.string().max(2_000).optional(),
});

/** Maximum length of the front matter, UTF-16 units. */
const MAX_FRONT_MATTER = 16_384;

const refuse = (role: string, problem: string): never => {
  throw invalid('CHAT.ROLE_INVALID', `the front matter of ${rolePath(role)} cannot be used: ${problem}`);
};

/** Parses the front matter of a role's file. Throws `CHAT.ROLE_INVALID`. */
export const parseRoleSettings = (role: string, frontMatter: string | null): RoleSettings => {
  if (frontMatter === null) return {};
  if (frontMatter.length > MAX_FRONT_MATTER)
    return refuse(role, `it is over ${MAX_FRONT_MATTER} characters long`);
  if (nestsDeeperThan(frontMatter)) return refuse(role, `it nests over ${MAX_JSON_DEPTH} levels deep`);
  const document = parseDocument(frontMatter, { prettyErrors: false, schema: 'core', merge: false });
  const [error] = document.errors;
  if (error) return refuse(role, error.message);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 }) ?? {};
  } catch (cause) {
    return refuse(role, String(cause));
  }
  const parsed = FrontMatter.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return refuse(role, `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'it is not valid'}`);
};

/** Parses the settings in the bytes of a role's file. Throws `CHAT.ROLE_INVALID`. */
export const parseRoleFile = (role: string, bytes: Uint8Array): RoleSettings =>
  parseRoleSettings(role, splitRole(new TextDecoder().decode(bytes)).frontMatter);
