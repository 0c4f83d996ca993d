import { readFileSync } from 'node:fs';
import type { StackJson } from './stack-json.js';

const TIMEOUT_MS = 3_000;

/**
 * Returns a link that signs in to the dashboard once, within five minutes. Null where no sign-in is
 * needed, and while the gateway cannot create one.
 */
export const createSignInLink = async ({ urls, adminKeyFile }: StackJson): Promise<string | null> => {
  const { gateway } = urls;
  if (gateway === null) return null;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const { status } = await fetch(`${gateway}/api/v1/me`, { signal });
    if (status !== 401) return null;
    const authorization = `Bearer ${readFileSync(adminKeyFile, 'utf8').trim()}`;
    const request = { method: 'POST', headers: { authorization }, signal };
    const response = await fetch(`${gateway}/api/v1/dashboard/links`, request);
    if (response.status !== 201) return null;
    return gateway + ((await response.json()) as { readonly path: string }).path;
  } catch {
    // The dashboard takes the admin key as well.
    return null;
  }
};
