import { answerTask } from '../../../../base/threads/task.ts'
import { type BundleExcerpt, openExcerpt } from '../open.ts'
import { totalBytes } from './halves.ts'

answerTask(async (data, progress) => {
  const bundle = await openExcerpt(data as BundleExcerpt)
  const total = totalBytes(bundle.manifest.members)
  try {
    await bundle.verify((done) => progress({ phase: 'verify', unit: 'bytes', done, total }))
    return null
  } finally {
    await bundle.close()
  }
})
