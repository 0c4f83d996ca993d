export { NativeToolsModule } from './native-tools.module.js';
