/**
 * What crosses the pipes between the service and a cell. A frame is two little-endian u32 (length of the JSON,
 * length of the body), the JSON, and the body's raw bytes: modules, inputs and outputs are never escaped or encoded.
 */
export type CellRequest =
  /** Body: the module. It is compiled, and instantiated once as a trial. */
  | { readonly type: 'load'; readonly id: number; readonly digest: string }
  /** Body: the input. */
  | {
      readonly type: 'call';
      readonly id: number;
      readonly digest: string;
      readonly entry: string;
      readonly settings?: CallSettings;
    }
  /** What the cell waits for after `http`. Body: the response's, or the text of `failed`, whose status is 0. */
  | { readonly type: 'http-answer'; readonly id: number; readonly answer: HttpAnswerHead };

/** `refused`: the plug-in may not have this, and its call ends so. `failed`: it may, and did not get it. */
export type HttpAnswerHead =
  | { readonly end: 'answered'; readonly status: number; readonly contentType: string }
  | { readonly end: 'failed' }
  | { readonly end: 'refused'; readonly reason: string };

/** What the plug-in may read of its call with Extism's `config_get`. */
export type CallSettings = Readonly<Record<string, string>>;

export type LogLine = { readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly text: string };

/** Facts that a cell finds out about itself before any plug-in has run in it. */
export interface CellFacts {
  /** Null where the platform has no user ids. */
  readonly uid: number | null;
  /** Names of network interfaces that are up. */
  readonly interfaces: readonly string[];
  readonly fileAccess: boolean;
}

export type CellReply =
  | { readonly type: 'ready'; readonly facts: CellFacts }
  | {
      readonly type: 'loaded';
      readonly id: number;
      readonly compileMs: number;
      readonly instantiateMs: number;
    }
  | { readonly type: 'refused'; readonly id: number; readonly message: string }
  | { readonly type: 'log'; readonly id: number; readonly line: LogLine }
  /** The plug-in asks for a page: Extism's request, JSON. The cell reads nothing but the answer until that is there. */
  | { readonly type: 'http'; readonly id: number; readonly request: string }
  /** More lines came than a call may log; sent once. */
  | { readonly type: 'flood'; readonly id: number }
  /** Body: the output, or the error's text when `failed`. */
  | {
      readonly type: 'returned';
      readonly id: number;
      readonly status: number;
      readonly failed: boolean;
      readonly instantiateMs: number;
      readonly suppressed: number;
    }
  | {
      readonly type: 'ended';
      readonly id: number;
      readonly end: 'trapped' | 'memory' | 'output' | 'denied';
      readonly message: string;
      readonly suppressed: number;
    };
