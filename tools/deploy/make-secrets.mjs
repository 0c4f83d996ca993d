import { randomBytes } from 'node:crypto';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../bootstrap/project.mjs';
import { composeEnvironment, kubernetesSecrets, makeSecrets } from './secrets/secrets.mjs';

/*
 * Writes .env for docker compose, unless the file exists. With --kubernetes it prints the Secrets
 * of k8s/overlays/local for `kubectl apply -f -`.
 */

const secrets = makeSecrets(() => randomBytes(24).toString('base64url'));

/** Writes a file of mode 600. Does not replace one, because the engines keep the old passwords. */
const writeNew = (path, text) => {
  try {
    const file = openSync(path, 'wx', 0o600);
    writeFileSync(file, text);
    closeSync(file);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    console.error(`${path} exists. What to do: move it away if its passwords are not in use`);
    process.exit(1);
  }
};

if (process.argv.includes('--kubernetes')) process.stdout.write(kubernetesSecrets(secrets));
else {
  const path = join(projectRoot, '.env');
  writeNew(path, composeEnvironment(secrets));
  console.log(`wrote ${path}; the gateway's token is ANTIPHON_GATEWAY_TOKEN in it`);
}
