import { readNamedFile } from './files.ts'

/** What files had when the daemon was started, by their paths; those that could not be read are missing. */
export type KeptFiles = Readonly<Record<string, Uint8Array>>

/** Reads files for the start data of a thread that rests: it uses what the daemon was started with, however often it starts. */
export function keepFiles(paths: readonly (string | null)[]): KeptFiles {
  return Object.fromEntries(paths.flatMap((path) => (path === null ? [] : contentOf(path))))
}

function contentOf(path: string): [string, Uint8Array][] {
  try {
    return [[path, readNamedFile(path)]]
  } catch {
    return [] // its reader reports why
  }
}

let kept: KeptFiles = {}

/** Sets the files of this thread. */
export function useKeptFiles(files: KeptFiles): void {
  kept = files
}

/** Reads a file; in a thread with kept files, what it had then. Throws the system's error. */
export function readKeptFile(path: string): Buffer {
  const content = kept[path]
  return content === undefined ? readNamedFile(path) : Buffer.from(content)
}
