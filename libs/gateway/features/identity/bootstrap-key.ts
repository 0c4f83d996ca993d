import { readFileSync } from 'node:fs';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { invalid } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { Environment } from '@antiphon/service-host';
import { parseApiKey, type ApiKeyText } from '../access/api-key-text.js';
import type { IdentityLog } from './identity-log.js';
import type { KeyRegistry } from './key-registry.js';

/** Caller in the facts of the key that an installation begins with. */
const BOOTSTRAP = 'bootstrap';

const readFile = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw invalid('GATEWAY.BOOTSTRAP_KEY', `the file of the bootstrap key cannot be read: ${path}`, {
      cause,
    });
  }
};

const parseBootstrapKey = (text: string): ApiKeyText => {
  const key = parseApiKey(text);
  if (key !== null) return key;
  throw invalid(
    'GATEWAY.BOOTSTRAP_KEY',
    'the bootstrap key has the wrong form: expected ak_, 16 characters of a-z and 2-7, _, 43 characters of base64url',
  );
};

/**
 * Returns the bootstrap keys of `ANTIPHON_BOOTSTRAP_KEY`, and of the file that
 * `ANTIPHON_BOOTSTRAP_KEY_FILE` names. Throws `GATEWAY.BOOTSTRAP_KEY` if one is malformed.
 */
export const readBootstrapKeys = (env: Environment): ApiKeyText[] => {
  const text = env['ANTIPHON_BOOTSTRAP_KEY'];
  const file = env['ANTIPHON_BOOTSTRAP_KEY_FILE'];
  return [...(text ? [text] : []), ...(file ? [readFile(file)] : [])].map(parseBootstrapKey);
};

/**
 * Makes the bootstrap key an admin key of the workspace `default`, unless it was one before. A
 * revoked key stays revoked, also after its row was deleted.
 */
export const ensureBootstrapKey = async (
  { keyId, secret }: ApiKeyText,
  registry: KeyRegistry,
  log: IdentityLog,
  logger: Logger,
): Promise<void> => {
  if (await log.hasKey(DEFAULT_WORKSPACE, keyId)) return;
  const rights = { role: 'admin', scopes: null, agentId: null, expiresAt: null } as const;
  const key = { keyId, workspace: DEFAULT_WORKSPACE, name: BOOTSTRAP, ...rights };
  await registry.issue(key, secret, BOOTSTRAP);
  logger.info({ keyId }, 'bootstrap key created');
};
