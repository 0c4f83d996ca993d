import { homeFolder } from '@antiphon/bootstrap/project';
import { stopStack } from '@antiphon/bootstrap/stop-stack';

export interface DownOptions {
  /** Default: `ANTIPHON_HOME`, else `./.antiphon`. */
  readonly home?: string;
  readonly onProgress?: (line: string) => void;
}

/**
 * Stops the stack of a home, gracefully and in order, and leaves no process of it, even after a kill -9 of its
 * supervisor. Stopping what does not run is no error.
 */
export const down = ({ home = homeFolder(), onProgress }: DownOptions = {}): Promise<{
  wasRunning: boolean;
}> => stopStack(home, onProgress);
