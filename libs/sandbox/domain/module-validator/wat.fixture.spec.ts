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

/** Node's WebAssembly engine, which Node's types do not declare. */
export const engine = (globalThis as unknown as { readonly WebAssembly: Engine }).WebAssembly;

/** Assembles a module from its text. Specs write modules that binaryen refuses as bytes. */
export const wat = (text: string): Uint8Array => {
  const module = binaryen.parseText(text);
  module.setFeatures(binaryen.Features.All);
  const bytes = module.emitBinary();
  module.dispose();
  return bytes;
};

/** Assembles a valid module whose `handle_tool_call` returns 0. */
export const tool = (rest = '', body = 'i32.const 0'): Uint8Array =>
  wat(`(module ${rest} (func (export "handle_tool_call") (result i32) ${body}))`);
