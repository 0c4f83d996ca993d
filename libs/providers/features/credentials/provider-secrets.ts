import { ModelFailure } from '@antiphon/providers-domain';
import { isAppError } from '@antiphon/kernel';

/** Reads the stored key of a provider for a workspace; null if there is none. */
export type ReadStoredKey = (workspace: string, provider: string) => Promise<string | null>;

/**
 * Reads a stored key for a call. A failure is one of a call that was not sent, without the secret.
 */
export const readKeyForCall = async (
  read: ReadStoredKey,
  workspace: string,
  provider: string,
): Promise<string | null> => {
  try {
    return await read(workspace, provider);
  } catch (error) {
    const isTransient = isAppError(error) && error.kind === 'transient';
    const reason = isAppError(error) ? error.message : 'the stored credential cannot be read';
    throw new ModelFailure({
      reason: 'provider_error',
      message: `provider ${provider}: ${reason}`,
      dispatched: false,
      retryable: isTransient,
    });
  }
};
