import { defineConfig } from 'prisma/config';

/** Settings of `npx prisma … --config prisma/prisma.config.ts`; the services never read them. */
export default defineConfig({
  schema: 'schema',
  migrations: { path: 'migrations' },
  datasource: { url: process.env['ANTIPHON_DATABASE_URL'] ?? 'postgresql://127.0.0.1:5432/antiphon' },
});
