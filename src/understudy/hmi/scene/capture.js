// A picture or a short video of the scene, saved as a file.

import { save, whenReady } from "../frame/api.js";

const LONGEST_MS = 60000;
const FRAMES_PER_SECOND = 25;
const REDRAW_MS = 1000; // a scene that stands is drawn all the same: the video has its length

class Capture {
  constructor(element) {
    this.button = element.querySelector("[data-mark=capture-video]");
  }

  get viewport() {
    return window.understudy.scene.viewport;
  }

  picture() {
    const { renderer, scene, camera } = this.viewport;
    renderer.render(scene, camera); // the drawing is gone after the browser has shown it
    renderer.domElement.toBlob((blob) => save(blob, fileName("png"), "image/png"), "image/png");
  }

  // Starts a video, or ends it and saves it.
  video() {
    if (this.recorder) return this.recorder.stop();
    const stream = this.viewport.renderer.domElement.captureStream(FRAMES_PER_SECOND);
    const parts = [];
    const recorder = (this.recorder = new MediaRecorder(stream, { mimeType: "video/webm" }));
    recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
    recorder.addEventListener("stop", () => {
      clearTimeout(this.limit);
      clearInterval(this.redraw);
      for (const track of stream.getTracks()) track.stop();
      this.recorder = null;
      this.button.classList.remove("u-recording");
      save(new Blob(parts, { type: "video/webm" }), fileName("webm"), "video/webm");
    });
    recorder.start();
    this.viewport.changed = true;
    this.redraw = setInterval(() => (this.viewport.changed = true), REDRAW_MS);
    this.limit = setTimeout(() => recorder.stop(), LONGEST_MS);
    this.button.classList.add("u-recording");
  }

  close() {
    this.recorder?.stop();
  }
}

const fileName = (ending) => `scene-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}.${ending}`;

whenReady(".u-capture", (element) => {
  window.capture = new Capture(element);
  return () => window.capture.close();
});
