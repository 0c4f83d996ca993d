import { z } from 'zod';
import { CallFrame, ServeFrame } from '../../libs/contracts/dist/gateway/index.js';
import { RemoteToolDeclaration, ToolRetry } from '../../libs/contracts/dist/sandbox/index.js';
import { renderPython } from './render-python.mjs';

const schemaOf = (schema) => z.toJSONSchema(schema, { io: 'input' });

/** Returns the text of clients/python/src/antiphon/protocol.py. */
export const renderProtocol = () =>
  renderPython(
    {
      WaitForWorker: schemaOf(RemoteToolDeclaration.shape.whenAbsent.def.innerType.def.options[1]),
      Retry: schemaOf(ToolRetry),
      ToolDeclaration: schemaOf(RemoteToolDeclaration),
      ServeFrame: schemaOf(ServeFrame),
      CallFrame: schemaOf(CallFrame),
    },
    { WhenAbsent: schemaOf(RemoteToolDeclaration.shape.whenAbsent.def.innerType) },
  );
