// Asked by the container engine: exit 0 while this container's service answers /healthz on
// loopback. `node healthcheck.mjs /readyz` asks whether everything that it needs works, too.
const port = process.env.ANTIPHON_SERVICE_HTTP_PORT ?? '8080';
const path = process.argv[2] ?? '/healthz';
try {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_500) });
  if (!answer.ok) console.error(await answer.text());
  process.exitCode = answer.ok ? 0 : 1;
} catch (error) {
  console.error(`${path} on port ${port}: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}
