import type { HttpResponse, SendHttp } from './http.js';
import type { UploadBody } from './reference.js';

/** The part of `XMLHttpRequest` that an upload uses. `fetch` of browsers reports no progress. */
interface ProgressRequest {
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null };
  responseType: string;
  readonly response: unknown;
  readonly status: number;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body?: unknown): void;
  abort(): void;
}

const createRequest = (): ProgressRequest | null => {
  const { XMLHttpRequest: Request } = globalThis as {
    readonly XMLHttpRequest?: new () => ProgressRequest;
  };
  return Request ? new Request() : null;
};

const responseOf = (request: ProgressRequest): HttpResponse => {
  const bytes = request.response as ArrayBuffer;
  return {
    status: request.status,
    ok: request.status >= 200 && request.status < 300,
    headers: { get: (name) => request.getResponseHeader(name) },
    text: () => Promise.resolve(new TextDecoder().decode(bytes)),
    arrayBuffer: () => Promise.resolve(bytes),
  };
};

const sizeOf = (body: string | UploadBody | undefined): number => {
  if (typeof body !== 'object') return 0;
  return 'size' in body ? body.size : body.byteLength;
};

/**
 * Sends an upload and reports the number of bytes that are sent. Where the runtime has no
 * `XMLHttpRequest`, it reports once, with the response.
 */
export const sendWithProgress =
  (fallback: SendHttp): SendHttp =>
  (url, init) => {
    const { method, headers, signal, body, onProgress } = init;
    const request = createRequest();
    if (!request)
      return fallback(url, init).then((response) => {
        onProgress?.(sizeOf(body));
        return response;
      });
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const abort = (): void => request.abort();
      const end = (settle: () => void) => () => {
        signal.removeEventListener('abort', abort);
        settle();
      };
      request.open(method, url);
      request.responseType = 'arraybuffer';
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded }) => onProgress?.(loaded);
      request.onload = end(() => resolve(responseOf(request)));
      request.onerror = end(() => reject(new TypeError('the upload was not sent')));
      request.onabort = end(() => reject(signal.reason as Error));
      signal.addEventListener('abort', abort);
      request.send(body);
    });
  };
