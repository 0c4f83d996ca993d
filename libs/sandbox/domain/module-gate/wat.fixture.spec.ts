import binaryen from 'assemblyscript/binaryen';

interface Compiled {
  readonly module?: string;
  readonly name: string;
  readonly kind: string;
}
interface Engine {
  readonly validate: (bytes: Uint8Array) => boolean;
  readonly Module: {
    new (bytes: Uint8Array): object;
    imports(module: object): Compiled[];
    exports(module: object): Compiled[];
  };
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> };
}

/** The engine's own opinion; Node's types leave it to those of browsers. */
export const engine = (globalThis as unknown as { readonly WebAssembly: Engine }).WebAssembly;

/** Assembles a module from its text; what binaryen itself would refuse is written in bytes instead. */
export const wat = (text: string): Uint8Array => {
  const module = binaryen.parseText(text);
  module.setFeatures(binaryen.Features.All);
  const bytes = module.emitBinary();
  module.dispose();
  return bytes;
};

/** A module that passes: `handle_tool_call` answers 0. */
export const tool = (rest = '', body = 'i32.const 0'): Uint8Array =>
  wat(`(module ${rest} (func (export "handle_tool_call") (result i32) ${body}))`);
