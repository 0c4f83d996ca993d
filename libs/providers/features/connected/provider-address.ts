import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { PROVIDER_FACTS, baseUrlProblem, isLoopbackUrl } from '@antiphon/config';
import type { ProviderKind } from '@antiphon/config';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { forbidden, invalid } from '@antiphon/kernel';

/** Query parameter that a vendor's address may have. All others may be secrets. */
const API_VERSION = 'api-version';
/** Addresses at which clouds hand credentials to any program of the machine. */
const METADATA = /^(?:169\.254\.|fe80:|fd00:ec2:|100\.100\.100\.200$|168\.63\.129\.16$|::ffff:a9fe:)/i;

const refused = (reason: string) =>
  forbidden('PROVIDER.ADDRESS_REFUSED', `this address cannot be used: ${reason}`);

const resolveHost = async (host: string): Promise<readonly string[]> => {
  const plain = host.replace(/^\[|\]$/g, '');
  if (isIP(plain) !== 0) return [plain];
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch {
    // The test of the provider reports a name that is unknown.
    return [];
  }
};

/**
 * Checks the address of a provider that a workspace connects. Throws `PROVIDER.BASE_URL_MISSING`,
 * `PROVIDER.BASE_URL_INVALID` and `PROVIDER.ADDRESS_REFUSED`: only the workspace `default`, which
 * operates the installation, may name an address, because calls come from inside its network.
 */
export const checkAddress = async (
  workspace: string,
  kind: ProviderKind,
  baseUrl: string | null,
): Promise<void> => {
  const given = baseUrl ?? PROVIDER_FACTS[kind].baseUrl;
  if (given === null) throw invalid('PROVIDER.BASE_URL_MISSING', `the kind ${kind} needs a base URL`);
  const problem = baseUrlProblem(given);
  if (problem) throw invalid('PROVIDER.BASE_URL_INVALID', `the base URL cannot be used: ${problem.message}`);
  const url = new URL(given);
  if ([...url.searchParams.keys()].some((name) => name !== API_VERSION))
    throw invalid(
      'PROVIDER.BASE_URL_INVALID',
      'the base URL cannot be used: it has a query, which every call would send',
    );
  if (workspace !== DEFAULT_WORKSPACE && (baseUrl !== null || isLoopbackUrl(given)))
    throw refused('only the workspace "default" may name one. What to do: leave the base URL out');
  const addresses = await resolveHost(url.hostname);
  if (addresses.some((address) => METADATA.test(address)))
    throw refused('it belongs to the metadata service of a cloud');
};
