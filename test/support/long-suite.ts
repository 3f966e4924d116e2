import { longSuiteFolder } from './fast-folder.ts'
import { makeFolder } from './make-folder.ts'

/** Makes the folder of this run of the long suite and removes it at the end. */
export function setup(): () => void {
  return makeFolder(longSuiteFolder())
}
