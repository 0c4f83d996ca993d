import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createGzip } from 'node:zlib';

/** Maximum size of a service's layer, bytes; docs/deployment.md explains each exception. */
export const BUDGET_BYTES = 25_000_000;

/** Returns the size of a folder as a gzipped tar, the form in which a registry stores a layer. */
export const gzipSize = async (folder) => {
  const tar = spawn('tar', ['-C', folder, '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(tar, 'exit');
  let bytes = 0;
  const gzip = tar.stdout.pipe(createGzip({ level: 6 }));
  for await (const chunk of gzip) bytes += chunk.length;
  const [code] = await exit;
  if (code !== 0) throw new Error(`tar of ${folder} ended with exit code ${code}`);
  return bytes;
};
