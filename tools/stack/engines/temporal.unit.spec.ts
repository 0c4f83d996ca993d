import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { temporalArguments } from './temporal.js';

const ROOT = join(import.meta.dirname, '../../..');
/** Without it the server looks up a name of its vendor at each start, and sends it its version. */
const QUIET = 'frontend.enableServerVersionCheck=false';

it('Temporal asks its vendor for no version, in any shipped form', () => {
  expect(temporalArguments(1, 2, 'temporal.db')).toContain(QUIET);
  for (const file of ['docker-compose.yml', 'k8s/overlays/local/engines/temporal.yaml'])
    expect(readFileSync(join(ROOT, file), 'utf8')).toContain(`--dynamic-config-value=${QUIET}`);
});
