export { NativeTools } from './tools/run-native-tool.js';
