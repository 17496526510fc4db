// A page that is opened from the disk may not start a Worker. Here its script
// runs in a hidden frame, so that the search needs no server and no network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const script = new URL(url, location);
      inside.document.write(`<script src="${script}"></script>`);
      inside.document.close();
      inside.addEventListener("load", () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }
    postMessage(data) {
      const event = new MessageEvent("message", { data });
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(event);
    }
  };
}
