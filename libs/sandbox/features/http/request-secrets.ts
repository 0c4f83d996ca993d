import { readSecret } from '@antiphon/contracts/agent';
import type { RequestClient } from '@antiphon/messaging';
import { needlesOf, redactNeedles } from '@antiphon/observability';
import type { Redact } from '@antiphon/observability';
import { fillSecrets, findSecretNames, vetUrl } from '@antiphon/sandbox-domain';
import type { HttpMethod, SecretValues, UrlVerdict, VettedUrl } from '@antiphon/sandbox-domain';

/** Reads secrets of a workspace; null for one that is not stored. */
export type ReadSecrets = (
  workspace: string,
  names: readonly string[],
) => Promise<Readonly<Record<string, string | null>>>;

/** Secrets that one call of a plug-in may use. */
export interface SecretGrant {
  readonly names: ReadonlySet<string>;
  readonly read: (names: readonly string[]) => Promise<Readonly<Record<string, string | null>>>;
}

/** A vetted request, with placeholders in place of secrets. */
export interface WrittenRequest {
  readonly method: HttpMethod;
  readonly url: VettedUrl;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Values of one request, and the function that removes them from texts. */
export interface OpenedSecrets {
  readonly values: SecretValues;
  readonly hide: Redact;
}

export type OpenedResult = OpenedSecrets | { readonly refusal: string };

const MAX_SECRETS_PER_REQUEST = 10;
/** A shorter text is no secret, and would match ordinary words. */
const MIN_HIDDEN = 4;
const NO_SECRETS: OpenedSecrets = { values: new Map(), hide: (text) => text };

/** Creates the reader of secrets that asks the agent service, which alone has the master key. */
export const createReadSecrets =
  (requests: Pick<RequestClient, 'request'>): ReadSecrets =>
  async (workspace, names) => {
    const read = async (name: string) =>
      [name, (await requests.request(readSecret, { workspace, name })).secret] as const;
    return Object.fromEntries(await Promise.all(names.map(read)));
  };

/** Reads the secrets that a request names. Rejects if they cannot be read now. */
export const openSecrets = async (
  { url, headers, body }: WrittenRequest,
  grant: SecretGrant | undefined,
): Promise<OpenedResult> => {
  const names = findSecretNames([url.target, ...Object.values(headers), body]);
  if (names.length === 0) return NO_SECRETS;
  const foreign = names.find((name) => !grant?.names.has(name));
  if (grant === undefined || foreign !== undefined)
    return { refusal: `the capability secret:${foreign} is not granted to this plug-in` };
  if (names.length > MAX_SECRETS_PER_REQUEST)
    return { refusal: `a request may have ${MAX_SECRETS_PER_REQUEST} secrets at most` };
  const read = await grant.read(names);
  const missing = names.find((name) => typeof read[name] !== 'string');
  if (missing !== undefined)
    return {
      refusal: `the workspace has no secret "${missing}". What to do: store it with "antiphon secret set ${missing} --stdin"`,
    };
  const values = new Map(names.map((name) => [name, read[name] ?? '']));
  const needles = needlesOf([...values.values()], MIN_HIDDEN);
  return { values, hide: (text) => redactNeedles(text, needles) };
};

/**
 * Inserts values into a URL, encoded. The result is vetted again: no value may lead out of the
 * granted path.
 */
export const fillUrl = (url: VettedUrl, values: SecretValues, hosts: ReadonlySet<string>): UrlVerdict => {
  if (values.size === 0) return url;
  const origin = `${url.secure ? 'https' : 'http'}://${url.authority}`;
  return vetUrl(`${origin}${fillSecrets(url.target, values, encodeURIComponent)}`, hosts);
};

/** Inserts values into headers. With another origin, headers that have a secret are left out. */
export const fillHeaders = (
  headers: WrittenRequest['headers'],
  values: SecretValues,
  isSameOrigin: boolean,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const filled = fillSecrets(value, values);
      return filled !== value && !isSameOrigin ? [] : [[name, filled]];
    }),
  );
