import { produceChunks } from '../../../../base/threads/chunks.ts'
import { type BundleExcerpt, openExcerpt } from '../open.ts'
import { sendRecords } from './read.ts'

produceChunks(async (data, send) => {
  const bundle = await openExcerpt(data as BundleExcerpt)
  try {
    await sendRecords(bundle, send)
  } finally {
    await bundle.close()
  }
})
