/** Text of the built page that each response replaces by its own nonce. */
export const NONCE_PLACEHOLDER = '__CSP_NONCE__';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'nonce-{nonce}'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "frame-src 'none'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types antiphon-worker',
  'report-uri /csp-report',
].join('; ');

const FEATURES = [
  ...['accelerometer', 'autoplay', 'camera', 'display-capture', 'encrypted-media', 'fullscreen'],
  ...['geolocation', 'gyroscope', 'magnetometer', 'microphone', 'midi', 'payment'],
  ...['picture-in-picture', 'publickey-credentials-get', 'screen-wake-lock', 'usb', 'xr-spatial-tracking'],
];

/** Returns the headers of the dashboard's files. Scripts and requests stay within the origin. */
export const dashboardHeaders = (nonce: string): Record<string, string> => ({
  'content-security-policy': POLICY.replace('{nonce}', nonce),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': FEATURES.map((name) => `${name}=()`).join(', '),
  // On plain HTTP a browser may resolve the hosts of links ahead, which no policy covers.
  'x-dns-prefetch-control': 'off',
});

/** Page of an installation whose dashboard is not built. */
export const UNBUILT_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Antiphon: the dashboard is not built</title></head><body>
<h1>The dashboard is not built</h1>
<p>Run <code>npm run build</code> in the folder of Antiphon, then load this page again. <code>npm start</code> builds it too.</p>
<p>The gateway runs: <a href="/docs">API reference</a>, <a href="/api/v1/health">status</a>.</p>
</body></html>
`;
