import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { compileTime } from '../bootstrap/build.mjs';

/*
 * Joins the modules of each service into a few files, which `npm start` runs. A service of 2,000
 * modules spends most of its start on finding and reading them. After a kill, turns wait for that
 * start. Images and specs run the modules.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SERVICES = ['agent', 'gateway', 'memory', 'metering', 'sandbox'];

/**
 * Packages that stay where they are. These are programs of the machine, WebAssembly next to a
 * module, optional packages of Nest, and a library that is loaded when it is used.
 */
const EXTERNAL = [
  /^node:/,
  /^(@temporalio|@prisma|@grpc)\//,
  /^pg($|[-/])/,
  /^(undici|reflect-metadata)/,
  /^@modelcontextprotocol\//,
  /^@nestjs\/(websockets\/socket-module|platform-express|platform-socket\.io)/,
  /^@fastify\/(multipart|static|view)/,
  /^(class-validator|class-transformer|nats|mqtt|ioredis|amqplib|amqp-connection-manager|kafkajs)(\/|$)/,
];

const folderOf = (service) => join(ROOT, 'apps', service, 'dist', 'bundle');
/**
 * Keeps the own address of each module: programs of threads and cells, plug-ins and the dashboard
 * are found from there. The new address is relative, so that the project can be moved.
 */
const keepAddresses = (folder) => ({
  name: 'keep-addresses',
  transform: (code, id) => {
    if (!code.includes('import.meta.url')) return null;
    const address = `new URL(${JSON.stringify(relative(folder, id))}, import.meta.url).href`;
    return { code: code.replaceAll('import.meta.url', address) };
  },
});

const stampOf = (service) => join(folderOf(service), 'inputs.json');
const isCurrent = (service, inputs) =>
  existsSync(stampOf(service)) && readFileSync(stampOf(service), 'utf8') === inputs;

/** Writes the bundle next to its place, so that a running stack never reads a part of one. */
const bundle = async (service, inputs) => {
  const folder = folderOf(service);
  const temporary = `${folder}.new`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  const built = await rolldown({
    input: join(ROOT, 'apps', service, 'dist', 'main.js'),
    platform: 'node',
    // Modules register things when they are loaded, so each is kept.
    treeshake: false,
    plugins: [keepAddresses(folder)],
    external: (id) => EXTERNAL.some((pattern) => pattern.test(id)),
    logLevel: 'silent',
  });
  try {
    await built.write({
      ...{ dir: temporary, format: 'esm', entryFileNames: 'main.mjs', chunkFileNames: '[name]-[hash].mjs' },
      // Nest and metrics use the names of classes.
      keepNames: true,
      // Decorators of any file need it, in any order of the files.
      banner: "import 'reflect-metadata';",
    });
  } finally {
    await built.close();
  }
  writeFileSync(join(temporary, 'inputs.json'), inputs);
  rmSync(folder, { recursive: true, force: true });
  renameSync(temporary, folder);
};

const packages = statSync(join(ROOT, 'package-lock.json')).mtimeMs;
const inputs = JSON.stringify({ compiledAt: compileTime(ROOT), packages });
for (const service of SERVICES) if (!isCurrent(service, inputs)) await bundle(service, inputs);
