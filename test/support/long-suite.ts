import { longSuiteFolder, suiteFolder } from './fast-folder.ts'
import { makeFolder } from './make-folder.ts'

/** Makes the folders of this run of the long suite and removes them at the end. */
export function setup(): () => void {
  const removals = [makeFolder(longSuiteFolder()), makeFolder(suiteFolder())]
  return () => {
    for (const remove of removals) remove()
  }
}
