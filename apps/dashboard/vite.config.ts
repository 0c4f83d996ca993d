import { createRequire } from 'node:module';
import { defineConfig } from 'vite';

const require = createRequire(import.meta.url);

// A build for people, also where a test or a shell has another value: React's development build is
// twice the size and slower.
process.env['NODE_ENV'] = 'production';

export default defineConfig({
  root: import.meta.dirname,
  resolve: {
    conditions: ['antiphon-source', 'module', 'browser', 'production'],
    alias: {
      // Its browser build sets innerHTML, which Trusted Types refuse.
      'decode-named-character-reference': require.resolve('decode-named-character-reference'),
    },
  },
  // The gateway puts the nonce of each answer in its place.
  html: { cspNonce: '__CSP_NONCE__' },
  oxc: { jsx: { runtime: 'automatic' } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    manifest: 'manifest.json',
    // Every asset is a file of the own origin, as the policy of the page asks.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Libraries mark their modules for servers that render React, which this is not.
    rolldownOptions: { checks: { moduleLevelDirective: false } },
  },
});
