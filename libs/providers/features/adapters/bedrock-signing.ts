import { Sha256 } from '@smithy/core/checksum';
import { SignatureV4 } from '@smithy/signature-v4';

/** Headers that one request is sent with. */
export type SignRequest = (url: URL, body: string) => Promise<Record<string, string>>;

const HOST = /(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z]{2,4}(?:-[a-z]+)+-\d)\./;

/**
 * Returns the region that an address of the vendor names, else that of the environment. Empty if it
 * is unknown.
 */
export const regionOf = (baseUrl: string, configured = ''): string =>
  HOST.exec(new URL(baseUrl).hostname)?.[1] ?? configured.trim();

/** Returns true for the parts of an access key, with which requests are signed. */
export const isAccessKey = (key: string): boolean => key.includes(':');

/**
 * Creates the headers of requests. A key is an API key of Bedrock, or the parts of an access key,
 * `ID:SECRET` or `ID:SECRET:SESSION_TOKEN`, with which each request is signed.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html
 */
export const createSigner = (key: string, region: string, now: () => number): SignRequest => {
  const [accessKeyId = '', secretAccessKey, ...token] = key.split(':');
  const headers = { 'content-type': 'application/json' };
  if (secretAccessKey === undefined)
    return () => Promise.resolve({ ...headers, authorization: `Bearer ${key}` });
  const sessionToken = token.join(':');
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken === '' ? {} : { sessionToken }) };
  const signer = new SignatureV4({ service: 'bedrock', region, credentials, sha256: Sha256 });
  return async ({ protocol, hostname, port, host, pathname, searchParams }, body) => {
    const request = {
      ...{ method: 'POST', protocol, hostname, path: pathname, body },
      ...(port === '' ? {} : { port: Number(port) }),
      query: Object.fromEntries(searchParams),
      headers: { ...headers, host },
    };
    const { headers: signed } = await signer.sign(request, { signingDate: new Date(now()) });
    return signed;
  };
};
